# cmake --install: headers, library, find_package(Vesta) and pkg-config files. All paths in them are relative to
# their own place, so that the installed folder can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS vesta EXPORT VestaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vesta ${PROJECT_BINARY_DIR}/gen/include/vesta
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Vesta)
install(EXPORT VestaTargets NAMESPACE Vesta:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/VestaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/VestaConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/VestaConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/VestaConfig.cmake ${PROJECT_BINARY_DIR}/VestaConfigVersion.cmake
  DESTINATION ${package_dir})

# pkg-config finds the prefix from the .pc file's own folder.
file(RELATIVE_PATH VESTA_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
set(VESTA_PC_LIBS "-pthread -lz")
if(CMAKE_DL_LIBS)
  string(APPEND VESTA_PC_LIBS " -l${CMAKE_DL_LIBS}")
endif()
if(VESTA_LIBBACKTRACE)
  string(APPEND VESTA_PC_LIBS " -l${VESTA_LIBBACKTRACE}")
endif()
# A static library needs its own libraries on every link line, a shared one brings them.
if(BUILD_SHARED_LIBS)
  set(VESTA_PC_PRIVATE "${VESTA_PC_LIBS}")
  set(VESTA_PC_PUBLIC "")
else()
  set(VESTA_PC_PRIVATE "")
  set(VESTA_PC_PUBLIC " ${VESTA_PC_LIBS}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/vesta.pc.in ${PROJECT_BINARY_DIR}/vesta.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vesta.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# libtorch's entry, apart from Vesta: its own folder, that a program's CMAKE_PREFIX_PATH names or does not, and its own
# component (cmake --install BUILD --component compat).
set(torch_dir compat/torch/share/cmake/Torch)
file(RELATIVE_PATH VESTA_FROM_TORCH /p/${torch_dir} /p/${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/compat/torch/cmake/TorchConfig.cmake.in
  ${PROJECT_BINARY_DIR}/TorchConfig.cmake INSTALL_DESTINATION ${torch_dir})
# The version of libtorch's interface that is followed.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake VERSION 1.13.1
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TorchConfig.cmake ${PROJECT_BINARY_DIR}/TorchConfigVersion.cmake
  DESTINATION ${torch_dir} COMPONENT compat EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/compat/torch/include DESTINATION compat/torch COMPONENT compat EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.h")
