def f():
    if a:
        c()
        d()
    return 1
