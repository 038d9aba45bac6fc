#pragma once
// What the code of the hand-written pages includes.
#include <any>

#include "docs/docs_testing.h"
#include "vesta/autocast.h"
#include "vesta/autograd.h"
#include "vesta/data.h"
#include "vesta/dlpack.h"
#include "vesta/functional.h"
#include "vesta/nn.h"
#include "vesta/op.h"
#include "vesta/optim.h"
#include "vesta/profiler.h"
#include "vesta/serialize.h"
