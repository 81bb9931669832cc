"""Programs of PyTorch alone that repeat a case. The verb `bundle` copies one into an archive
and fills in its CASE. They import nothing of graphproof."""
