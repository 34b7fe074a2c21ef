def run(tap, server): pass
