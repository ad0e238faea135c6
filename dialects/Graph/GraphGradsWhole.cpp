// Adjoint rules of whole ops (being written).
#include "dialects/Graph/Graph.h"
