if a:
    b()
  c()
