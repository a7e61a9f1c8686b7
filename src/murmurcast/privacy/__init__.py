"""What leaks: the exact Gaussian curve, the certificate, amplification, the paper's view, the linear diagnostic."""
