// The C interface as a C program uses it, and its layout as plugins were compiled against it.
#include "vesta/c_api.h"

#include <gtest/gtest.h>

#include <cstddef>

extern "C" int c_client_run(void);

TEST(CApi, a_c_program_calls_operators_differentiates_and_handles_errors) {
  EXPECT_EQ(c_client_run(), 0) << "the line of tests/abi/c_client.c that failed";
}

// Offsets within major 0 may only be appended to; a change here breaks every plugin.
TEST(CApi, the_table_keeps_its_layout) {
  EXPECT_EQ(sizeof(VestaValue), 16u);
  EXPECT_EQ(offsetof(VestaApi, error_kind), 16u);
  EXPECT_EQ(offsetof(VestaApi, tensor_empty), 40u);
  EXPECT_EQ(offsetof(VestaApi, tensor_data), 112u);
  EXPECT_EQ(offsetof(VestaApi, grad_mode_set), 152u);
  EXPECT_EQ(offsetof(VestaApi, op_call), 176u);
  EXPECT_EQ(offsetof(VestaApi, set_num_threads), 200u);
}
