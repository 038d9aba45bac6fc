#pragma once
// Forward declarations.
namespace vesta {
class Tensor;
class Scalar;
class Generator;
class TensorOptions;
struct TensorImpl;
}  // namespace vesta
