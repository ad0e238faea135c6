# lit's configuration. CMake passes the folders as parameters: tools (plimsoll-opt and others), llvm_tools (FileCheck, not),
# scratch (outputs).
import os

import lit.formats

config.name = "plimsoll"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params.get("scratch", os.path.join(config.test_source_root, "Output"))
folders = [lit_config.params[name] for name in ("tools", "llvm_tools") if name in lit_config.params]
config.environment["PATH"] = os.pathsep.join(folders + [config.environment.get("PATH", "")])
config.substitutions.append(("%source", os.path.dirname(os.path.dirname(config.test_source_root))))
