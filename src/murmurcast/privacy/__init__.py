"""What leaks: the exact Gaussian curve, the certificate, the paper's view, the linear diagnostic."""
