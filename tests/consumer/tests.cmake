# Registers the consumer tests. Not for sanitized builds, whose library forces its flags on every program.
if(VESTA_SANITIZE OR NOT VESTA_INSTALL)
  return()
endif()

function(vesta_consumer_test name step label)
  cmake_parse_arguments(arg "" "HOW" "PROPERTIES;OPTIONS" ${ARGN})
  add_test(NAME consumer.${name} COMMAND ${CMAKE_COMMAND} -DSTEP=${step} -DHOW=${arg_HOW} "-DOPTIONS=${arg_OPTIONS}"
    -DVESTA_SOURCE=${PROJECT_SOURCE_DIR} -DVESTA_BUILD=${PROJECT_BINARY_DIR} -DWORK=${PROJECT_BINARY_DIR}/consumer
    -DCXX=${CMAKE_CXX_COMPILER} -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
  set_tests_properties(consumer.${name} PROPERTIES LABELS ${label} TIMEOUT 1800 ${arg_PROPERTIES})
endfunction()

vesta_consumer_test(install install fast PROPERTIES FIXTURES_SETUP vesta_installed)
vesta_consumer_test(find_package find_package fast PROPERTIES FIXTURES_REQUIRED vesta_installed)
vesta_consumer_test(libtorch_program libtorch fast PROPERTIES FIXTURES_REQUIRED vesta_installed)
find_program(VESTA_PKG_CONFIG pkg-config)
if(VESTA_PKG_CONFIG)
  vesta_consumer_test(pkg_config pkg_config fast PROPERTIES FIXTURES_REQUIRED vesta_installed)
endif()
# The fast variants compile only the consumer's own file; the nightly ones build the library again.
vesta_consumer_test(add_subdirectory_headers headers fast HOW add_subdirectory)
vesta_consumer_test(fetch_content_headers headers fast HOW fetch_content)
vesta_consumer_test(add_subdirectory_static subproject nightly HOW add_subdirectory OPTIONS -DVESTA_ISA=one)
vesta_consumer_test(fetch_content_shared subproject nightly HOW fetch_content
  OPTIONS "-DVESTA_ISA=one -DBUILD_SHARED_LIBS=ON")
