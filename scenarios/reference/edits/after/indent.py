def f():
    if a:
        c()
    return 1
