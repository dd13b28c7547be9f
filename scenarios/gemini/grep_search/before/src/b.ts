foo()
