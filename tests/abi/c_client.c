/* A plain C program over the table: builds a small graph, differentiates it, and provokes an error. Returns 0 where
 * everything is as expected. Compiled as C by the tests. */
#include <math.h>
#include <string.h>

#include "vesta/c_api.h"

#define CHECK(cond) do { if (!(cond)) return __LINE__; } while (0)

static VestaValue tensor_value(VestaTensor* t) {
  VestaValue v;
  memset(&v, 0, sizeof v);
  v.kind = VESTA_VALUE_TENSOR;
  v.u.tensor = t;
  return v;
}

static int deleted = 0;
static void on_delete(void* data, void* context) { (void)data; *(int*)context += 1; }

int c_client_run(void) {
  const VestaApi* api = vesta_get_api(VESTA_API_MAJOR);
  CHECK(api && api->size >= sizeof(VestaApi) && api->major == VESTA_API_MAJOR);
  CHECK(vesta_get_api(999) == NULL);

  float data[3] = {1, 2, 3};
  int64_t sizes[1] = {3};
  VestaTensor *x = NULL, *y = NULL;
  CHECK(!api->tensor_from_blob(data, sizes, 1, VESTA_FLOAT32, on_delete, &deleted, &x));
  CHECK(api->tensor_ndim(x) == 1 && api->tensor_sizes(x)[0] == 3 && api->tensor_dtype(x) == VESTA_FLOAT32);
  CHECK(!api->tensor_set_requires_grad(x, 1));

  int32_t mul, sum;
  CHECK(!api->op_find("mul.Tensor", &mul) && !api->op_find("sum", &sum));
  VestaValue args[2], result;
  args[0] = args[1] = tensor_value(x);
  CHECK(!api->op_call(mul, args, 2, &result));
  y = result.u.tensor;
  args[0] = tensor_value(y);
  CHECK(!api->op_call(sum, args, 1, &result)); /* dtype takes its default */
  VestaTensor* loss = result.u.tensor;
  void* p;
  CHECK(!api->tensor_data(loss, &p) && fabsf(*(float*)p - 14) < 1e-6f);
  CHECK(!api->tensor_backward(loss, NULL, 0));
  VestaTensor* grad = NULL;
  CHECK(!api->tensor_grad(x, &grad) && grad);
  CHECK(!api->tensor_data(grad, &p) && ((float*)p)[2] == 6);

  /* Errors carry a kind and a message, and leave everything usable. */
  int32_t nothing;
  VestaError* e = api->op_find("no_such_op", &nothing);
  CHECK(e && api->error_kind(e) == VESTA_ERROR_NOT_IMPLEMENTED && strstr(api->error_message(e), "no_such_op"));
  api->error_free(e);
  int64_t four[1] = {4};
  VestaTensor* z = NULL;
  CHECK(!api->tensor_empty(four, 1, VESTA_FLOAT32, &z));
  args[0] = tensor_value(x);
  args[1] = tensor_value(z);
  e = api->op_call(mul, args, 2, &result);
  CHECK(e && api->error_kind(e) == VESTA_ERROR_VALUE && strstr(api->error_message(e), "mul.Tensor"));
  api->error_free(e);
  args[1].kind = VESTA_VALUE_INT;
  e = api->op_call(mul, args, 2, &result);
  CHECK(e && api->error_kind(e) == VESTA_ERROR_TYPE);
  api->error_free(e);

  api->tensor_release(z);
  api->tensor_release(grad);
  api->tensor_release(loss);
  api->tensor_release(y);
  api->tensor_release(x);
  CHECK(deleted == 1);
  return 0;
}
