# SPDX-License-Identifier: Apache-2.0
# CPack runs this after installing into its staging folder and before packing. Gives the files permissions and the time that SOURCE_DATE_EPOCH asks
# for, and makes the changes that Debian's policy requires.

# Archives have the times and the permissions of their files, of which the caller's umask takes some.
function(settle)
  execute_process(COMMAND chmod -R u=rwX,go=rX,ug-s ${CPACK_TEMPORARY_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endfunction()
settle()

if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

# A compressed file whose bytes depend only on its content.
function(gzip)
  execute_process(COMMAND gzip -9nf ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# document(STAGE PACKAGE): copyright and changelog of one package.
function(document stage package)
  set(folder ${stage}/usr/share/doc/${package})
  file(READ ${CPACK_WEIGHBRIDGE_SOURCE}/NOTICE notice)
  set(holds "xxHash (BSD-2-Clause), fast_float (Apache-2.0 or MIT)")
  if(CPACK_WEIGHBRIDGE_STATIC)
    string(APPEND holds ", fmt (MIT), OpenSSL (Apache-2.0), zstd (BSD-3-Clause), zlib (Zlib), the GNU C library (LGPL-2.1-or-later)\n"
      "and GCC's libraries (GPL-3 with the runtime exception)")
  endif()
  file(WRITE ${folder}/copyright "${notice}
The command also holds code of ${holds}.

On Debian systems the complete text of the Apache License, Version 2.0 is in /usr/share/common-licenses/Apache-2.0.
")
  set(date "${CPACK_WEIGHBRIDGE_DATE}")
  if(NOT date)
    set(date 1970-01-01)
  endif()
  execute_process(COMMAND date -u -R -d ${date} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
  file(WRITE ${folder}/changelog.Debian "weighbridge (${version}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}; what changed is in changelog.gz of the package weighbridge.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}
")
  gzip(${folder}/changelog.Debian)
endfunction()

set(command ${CPACK_TEMPORARY_DIRECTORY}/command)
if(EXISTS ${command})
  document(${command} weighbridge)
  file(REMOVE ${command}/usr/share/doc/weighbridge/LICENSE ${command}/usr/share/doc/weighbridge/NOTICE)  # see `copyright`
  file(COPY_FILE ${command}/usr/share/doc/weighbridge/CHANGELOG.md ${command}/usr/share/doc/weighbridge/changelog)
  gzip(${command}/usr/share/doc/weighbridge/changelog)
  file(GLOB manual ${command}/usr/share/man/man1/*.1)
  gzip(${manual})
  if(CPACK_WEIGHBRIDGE_STATIC)
    file(WRITE ${command}/usr/share/lintian/overrides/weighbridge
      "# Starting is what most calls spend their time on, and a static program starts in half of it.\n"
      "weighbridge: statically-linked-binary [usr/bin/weighbridge]\n")
  endif()
  file(RENAME ${command}/usr/share/zsh/site-functions ${command}/usr/share/zsh/vendor-completions)
endif()
set(development ${CPACK_TEMPORARY_DIRECTORY}/development)
if(EXISTS ${development})
  document(${development} libweighbridge-dev)
endif()
settle()
