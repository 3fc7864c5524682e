import os

# Tests compile what they test, and leave nothing in the user's home.
os.environ["CUVIL_CACHE_DIR"] = ""
