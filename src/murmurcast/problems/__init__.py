"""What is learnt: problems with closed-form, clipped gradients."""
