"""What users hand in is checked here, once: parameters, rows, labels and weights."""
