"""The rows of the benchmark's table, one module for each kind."""
