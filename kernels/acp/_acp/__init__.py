"""What stands beside an agent of the Agent Client Protocol inside its sandbox: see kernels/README.md."""
