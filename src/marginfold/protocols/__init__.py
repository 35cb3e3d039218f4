"""Studies of the papers: what they print, and the same measured again."""
