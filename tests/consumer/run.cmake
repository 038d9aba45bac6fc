# One step of the consumer tests, run by ctest:
#   cmake -DSTEP=... -DVESTA_SOURCE= -DVESTA_BUILD= -DWORK= -DCXX= [-DHOW= -DOPTIONS=] -P run.cmake
# install       installs VESTA_BUILD, then moves the result, so that later steps also prove that it is relocatable
# find_package  an outside CMake project against it
# libtorch      a program of libtorch's kind, through the TorchConfig.cmake of the component compat
# pkg_config    one compiler command with pkg-config's answers
# headers       Vesta as a subproject: configures, compiles the consumer's own file (not Vesta)
# subproject    Vesta as a subproject: builds all of it and runs the program
set(prefix ${WORK}/moved)
separate_arguments(OPTIONS UNIX_COMMAND "${OPTIONS}")
set(build ${WORK}/${STEP}${HOW})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nfailed: ${failed}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(run_consumer program)
  run(${program})
  if(NOT output MATCHES "^vesta [0-9.]+ works\n$")
    message(FATAL_ERROR "the consumer printed: ${output}")
  endif()
  message(STATUS "${output}")
endfunction()

# A user's environment must not hide what the tests look for.
foreach(variable CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH)
  unset(ENV{${variable}})
endforeach()
file(REMOVE_RECURSE ${build})

if(STEP STREQUAL "install")
  file(REMOVE_RECURSE ${WORK}/staged ${prefix})
  run(${CMAKE_COMMAND} --install ${VESTA_BUILD} --prefix ${WORK}/staged)
  run(${CMAKE_COMMAND} --install ${VESTA_BUILD} --prefix ${WORK}/staged --component compat)
  file(RENAME ${WORK}/staged ${prefix})
  file(GLOB_RECURSE files ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h)
  foreach(file ${files})
    file(STRINGS ${file} lines REGEX "${WORK}|${VESTA_BUILD}|${VESTA_SOURCE}/")
    if(lines)
      message(FATAL_ERROR "${file} names a folder of the build machine: ${lines}")
    endif()
  endforeach()
elseif(STEP STREQUAL "find_package")
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${build} -G Ninja -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX})
  run(${CMAKE_COMMAND} --build ${build})
  run_consumer(${build}/consumer)
  run(${build}/custom_op)
elseif(STEP STREQUAL "libtorch")
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/../compat -B ${build} -G Ninja
    -DCMAKE_PREFIX_PATH=${prefix}/compat/torch -DCMAKE_CXX_COMPILER=${CXX})
  run(${CMAKE_COMMAND} --build ${build})
  run(${CMAKE_COMMAND} -E chdir ${build} ${build}/libtorch_program)
  message(STATUS "${output}")
elseif(STEP STREQUAL "pkg_config")
  file(GLOB_RECURSE pc ${prefix}/vesta.pc)
  get_filename_component(pc_dir ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${pc_dir})
  run(pkg-config --cflags --libs vesta)
  separate_arguments(flags UNIX_COMMAND "${output}")
  file(MAKE_DIRECTORY ${build})
  run(pkg-config --variable=libdir vesta)
  string(STRIP "${output}" libdir)
  run(${CXX} -Wall -Wextra -Werror ${CMAKE_CURRENT_LIST_DIR}/main.cpp -o ${build}/consumer ${flags}
    -Wl,-rpath,${libdir})
  run_consumer(${build}/consumer)
elseif(STEP STREQUAL "headers" OR STEP STREQUAL "subproject")
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/subproject -B ${build} -G Ninja -DHOW=${HOW}
    -DVESTA_SOURCE=${VESTA_SOURCE} -DCMAKE_CXX_COMPILER=${CXX} ${OPTIONS})
  if(STEP STREQUAL "headers")
    run(${CMAKE_COMMAND} --build ${build} --target vesta_declarations)
    run(ninja -C ${build} CMakeFiles/consumer.dir${CMAKE_CURRENT_LIST_DIR}/main.cpp.o)
  else()
    run(${CMAKE_COMMAND} --build ${build})
    run_consumer(${build}/consumer)
    file(REMOVE_RECURSE ${build})  # a whole library: hundreds of megabytes
  endif()
else()
  message(FATAL_ERROR "unknown STEP '${STEP}'")
endif()
