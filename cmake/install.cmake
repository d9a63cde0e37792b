# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays down: the command, the library with its public headers, and the package find_package() looks for.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weighbridge)

install(TARGETS weighbridge_library EXPORT weighbridgeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/weighbridge DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT weighbridgeTargets NAMESPACE weighbridge:: DESTINATION ${package})
if(TARGET weighbridge)
  install(TARGETS weighbridge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/weighbridgeConfig.cmake.in ${PROJECT_BINARY_DIR}/weighbridgeConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weighbridgeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weighbridgeConfig.cmake ${PROJECT_BINARY_DIR}/weighbridgeConfigVersion.cmake
  cmake/dependencies.cmake DESTINATION ${package})
