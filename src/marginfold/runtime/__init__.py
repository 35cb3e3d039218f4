"""The machine a fit runs on: threads, memory, progress, files, optional packages, compilation."""
