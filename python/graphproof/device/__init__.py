"""What arms need of a device: graphs that are observed, memory, delays, generators."""
