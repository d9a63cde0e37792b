# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs, in two components: `command`, with its manual and completions, and `development`, the library
# with its public headers and the files for find_package() and pkg-config. No file contains the prefix, so the tree can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weighbridge)

# The library
install(TARGETS weighbridge_library weighbridge_chain EXPORT weighbridgeTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT command NAMELINK_COMPONENT development)
install(DIRECTORY include/weighbridge DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(EXPORT weighbridgeTargets NAMESPACE weighbridge:: DESTINATION ${package} COMPONENT development)
configure_package_config_file(cmake/weighbridgeConfig.cmake.in ${PROJECT_BINARY_DIR}/weighbridgeConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weighbridgeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weighbridgeConfig.cmake ${PROJECT_BINARY_DIR}/weighbridgeConfigVersion.cmake
  cmake/dependencies.cmake DESTINATION ${package} COMPONENT development)

file(RELATIVE_PATH pc_up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
set(pc_requires Requires)
if(BUILD_SHARED_LIBS)
  set(pc_requires Requires.private)
endif()
configure_file(cmake/weighbridge.pc.in ${PROJECT_BINARY_DIR}/weighbridge.pc @ONLY)
# In the order in which a C compiler must link them. With Requires, those of C++ would come before what needs them.
set(c_libraries "-lfmt -lzstd -lz -lcrypto -lstdc++ -lm")
set(chain_library -lweighbridge_chain)
if(BUILD_SHARED_LIBS)
  set(chain_library "")  # part of the shared library
  set(c_libraries "")
endif()
configure_file(cmake/weighbridge-chain.pc.in ${PROJECT_BINARY_DIR}/weighbridge-chain.pc @ONLY)
configure_file(cmake/weighbridge-c.pc.in ${PROJECT_BINARY_DIR}/weighbridge-c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weighbridge.pc ${PROJECT_BINARY_DIR}/weighbridge-chain.pc ${PROJECT_BINARY_DIR}/weighbridge-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# The command
install(TARGETS weighbridge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
# The documentation pages, in their folders, so that the links between them work.
file(GLOB wb_pages RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
  *.md */*.md docs/*/*.md web/api/README.md docs/charts/*/*.svg docs/images/*.png docs/schemas/*.json examples/*.py examples/*.ipynb)
list(FILTER wb_pages EXCLUDE REGEX "^build")
file(GLOB_RECURSE wb_own_pages RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS src/README.md)
foreach(page IN LISTS wb_pages wb_own_pages)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT command)
endforeach()

# The manual and completions, written by the command and by generate_man.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()
set(pages ${PROJECT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/man.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}/man1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/man1
  COMMAND generate_man ${pages}/man1 "${WEIGHBRIDGE_DATE}"
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}/man.stamp
  DEPENDS generate_man VERBATIM)
set(completions)
foreach(shell IN ITEMS bash zsh fish)
  add_custom_command(OUTPUT ${pages}/completion.${shell}
    COMMAND weighbridge completion ${shell} > ${pages}/completion.${shell}
    DEPENDS weighbridge VERBATIM)
  list(APPEND completions ${pages}/completion.${shell})
endforeach()
add_custom_command(OUTPUT ${pages}/weighbridge.spdx.json
  COMMAND ${CMAKE_COMMAND} -D COMMAND=$<TARGET_FILE:weighbridge> -D DATE=${WEIGHBRIDGE_DATE} -D STATIC=${WEIGHBRIDGE_STATIC}
    -D OUT=${pages}/weighbridge.spdx.json -P ${PROJECT_SOURCE_DIR}/cmake/sbom.cmake
  DEPENDS weighbridge ${PROJECT_SOURCE_DIR}/cmake/sbom.cmake VERBATIM)
add_custom_target(pages ALL DEPENDS ${pages}/man.stamp ${completions} ${pages}/weighbridge.spdx.json)

install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(FILES ${pages}/weighbridge.spdx.json DESTINATION ${CMAKE_INSTALL_DATADIR}/sbom COMPONENT command)
install(FILES ${pages}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME weighbridge COMPONENT command)
install(FILES ${pages}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  RENAME _weighbridge COMPONENT command)
install(FILES ${pages}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  RENAME weighbridge.fish COMPONENT command)
