#pragma once
// Data sets, samplers, transforms and loaders, with libtorch's names.
//   auto set = data::datasets::TensorPairDataset(images, labels).map(data::transforms::Stack<>());
//   auto loader = data::make_data_loader(std::move(set), data::DataLoaderOptions().batch_size(64).workers(2).seed(7));
//   for (auto& batch : *loader) step(batch.data, batch.target);
// The order of examples depends on the seed and the epoch alone, never on the number of workers.
#include "vesta/data_loader.h"
#include "vesta/data_mnist.h"
#include "vesta/data_stream.h"
#include "vesta/data_transforms.h"
