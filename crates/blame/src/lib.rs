//! Why a beat was late: the kernel's trace around it, recorded and read.
