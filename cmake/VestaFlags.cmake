# Compiler flags shared by all of Vesta's own targets; nothing leaks into a program that includes us.
#   vesta_program_flags   what every program built here needs: sanitizers, linker (also the examples)
#   vesta_flags           the above, warnings, visibility and the private include folders: library, tests, tools
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_program(VESTA_CCACHE ccache)
if(VESTA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VESTA_CCACHE})
endif()
find_program(VESTA_LLD ld.lld)

# Optimisation and sanitizers go in front, through this directory's CMAKE_CXX_FLAGS: a target's own options come after
# them (kernels: -O3), while an INTERFACE library's options would come last and win.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(APPEND CMAKE_CXX_FLAGS_DEBUG " -O1")
if(VESTA_SANITIZE)
  string(APPEND CMAKE_CXX_FLAGS " -fsanitize=${VESTA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer")
  if(VESTA_SANITIZE MATCHES "undefined")
    # AddressSanitizer finds what these find; they double the time to compile.
    string(APPEND CMAKE_CXX_FLAGS " -fno-sanitize=null,vptr,object-size")
  endif()
endif()

add_library(vesta_program_flags INTERFACE)
if(VESTA_LLD)
  target_link_options(vesta_program_flags INTERFACE -fuse-ld=lld)
endif()
target_link_options(vesta_program_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-Wl,--gc-sections>)

add_library(vesta_flags INTERFACE)
target_compile_features(vesta_flags INTERFACE cxx_std_20)
# -ffp-contract=off: the same text gives the same bits on every ISA level; fma is written where it is meant.
target_compile_options(vesta_flags INTERFACE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers -ffp-contract=off $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  $<$<CONFIG:Release>:-g1> "$<$<NOT:$<CONFIG:Debug>>:-ffunction-sections;-fdata-sections>")
# gcc brings libbacktrace along: source lines in the messages of anomaly mode.
include(CheckCXXSourceCompiles)
set(VESTA_LIBBACKTRACE "")
if(NOT VESTA_EMBEDDED)
  set(CMAKE_REQUIRED_LIBRARIES backtrace)
  check_cxx_source_compiles("#include <backtrace.h>
    int main() { return backtrace_create_state(nullptr, 1, nullptr, nullptr) == nullptr; }" VESTA_HAS_LIBBACKTRACE)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(VESTA_HAS_LIBBACKTRACE)
    set(VESTA_LIBBACKTRACE backtrace)
    target_compile_definitions(vesta_flags INTERFACE VESTA_LIBBACKTRACE=1)
  endif()
endif()

if(VESTA_WERROR AND NOT VESTA_SANITIZE)
  # Those that depend on what the optimiser has inlined stay warnings.
  target_compile_options(vesta_flags INTERFACE -Werror -Wno-error=maybe-uninitialized -Wno-error=array-bounds
    -Wno-error=stringop-overflow -Wno-error=stringop-overread)
endif()
# A shared library exports namespace vesta and the C functions by cmake/exports.map, so that public headers need no
# export macro; a static one hides everything.
if(BUILD_SHARED_LIBS)
  target_compile_options(vesta_flags INTERFACE -fno-semantic-interposition)
else()
  target_compile_options(vesta_flags INTERFACE -fvisibility=hidden)
endif()
target_compile_definitions(vesta_flags INTERFACE
  $<$<CONFIG:Debug>:VESTA_DEBUG=1> $<$<BOOL:${VESTA_EMBEDDED}>:VESTA_EMBEDDED=1>)
target_include_directories(vesta_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/gen/include
  ${PROJECT_BINARY_DIR}/gen/private)
target_link_libraries(vesta_flags INTERFACE vesta_program_flags Threads::Threads ${CMAKE_DL_LIBS})

# Numeric loops: -fno-trapping-math lets gcc vectorise selects (log is 9x slower without it); never -ffast-math.
# -fwrapv: integer texts wrap, as documented.
set(VESTA_KERNEL_FLAGS -fno-math-errno -fno-trapping-math -fwrapv "$<IF:$<CONFIG:Debug>,-g1,-O3>")
# Inlined vector code under all of UBSan takes a minute a file; AddressSanitizer sees bad pointers anyway, so only the
# arithmetic checks stay (a reduction file: 69 s with -O3 and everything, 15 s so).
if(VESTA_SANITIZE MATCHES "undefined")
  # The nonnull checks too: with them gcc takes the address of a template function for possibly null, and `loop != nullptr`
  # is no constant expression any more.
  list(APPEND VESTA_KERNEL_FLAGS
    -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute,alignment,object-size,vptr,pointer-overflow)
endif()
