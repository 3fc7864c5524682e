#!python
"""The command `cuvil` of the wheels: becomes the program in the package, without importing the package."""

import importlib.util
import os
import sys

package = importlib.util.find_spec("cuvil").submodule_search_locations[0]
program = os.path.join(package, "bin", "cuvil")
os.execv(program, ["cuvil", *sys.argv[1:]])
