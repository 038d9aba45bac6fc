# Target check_headers: each header compiles alone, and twice. Public headers see nothing but include/ and generated
# public headers; private ones see src/ too. tools/buildtime shows what each costs.
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/include/*.h)
file(GLOB_RECURSE private_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.h)
# Templates are compiled by their own tests, with the parameters they expect.
# The parts of the scalar prelude come through prelude.h.
list(FILTER public_headers EXCLUDE REGEX "^vesta/scalar/prelude_")
list(FILTER private_headers EXCLUDE REGEX "^kernels/templates/")

add_custom_target(check_headers)
function(vesta_check_headers kind)
  set(files)
  foreach(header ${ARGN})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/headers/${kind}/${header}.cpp)
    set(text "#include \"${header}\"\n#include \"${header}\"\n")
    # CONFIGURE keeps the time of a file whose text is the same.
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  if(NOT files)
    return()
  endif()
  add_library(vesta_headers_${kind} OBJECT EXCLUDE_FROM_ALL ${files})
  target_compile_features(vesta_headers_${kind} PRIVATE cxx_std_20)
  target_compile_options(vesta_headers_${kind} PRIVATE -Wall -Wextra -Wno-unused-function -O0 -g0)
  add_dependencies(vesta_headers_${kind} vesta_declarations)
  add_dependencies(check_headers vesta_headers_${kind})
endfunction()

vesta_check_headers(public ${public_headers})
vesta_check_headers(private ${private_headers})
if(TARGET vesta_headers_public)
  target_include_directories(vesta_headers_public PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/gen/include)
endif()
if(TARGET vesta_headers_private)
  target_link_libraries(vesta_headers_private PRIVATE vesta_flags)
  # What the files of an ISA level are compiled with.
  target_compile_definitions(vesta_headers_private PRIVATE VESTA_ISA=baseline VESTA_ISA_baseline=1)
endif()
