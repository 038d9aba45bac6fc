// clone() of every layer of vesta/nn.h: here VESTA_LAYER_CLONE defines what it declares elsewhere.
#define VESTA_LAYER_CLONES
#include "vesta/nn.h"
