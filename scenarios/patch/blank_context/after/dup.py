def f():
    x = 1
    return x

def g():
    x = 9
    return x
