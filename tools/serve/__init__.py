"""The smallest real engine on the cache: models in JAX, continuous batching, paged attention.

Rule: modules here may import `jax`; this file may not, so that the command line stays light.
"""
