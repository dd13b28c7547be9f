def alpha():
    return 1
