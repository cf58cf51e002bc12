result kernel
uname -srv >&3
