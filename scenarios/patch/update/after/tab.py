def f():
	if a:
		c()
