# SPDX-License-Identifier: Apache-2.0
# Writes the bill of materials of the command, in SPDX 2.3: what `COMMAND --version --json` says is inside, with licenses and the names
# under which lists of vulnerabilities know it. The same commit gives the same bytes.
# usage: cmake -D COMMAND=program -D DATE=2026-01-31 -D STATIC=ON -D OUT=file -P sbom.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${COMMAND} --version --json OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
string(JSON version GET "${said}" version)
string(JSON commit GET "${said}" commit)
if(NOT DATE)
  set(DATE 1970-01-01)
endif()
set(relation DYNAMIC_LINK)
if(STATIC)
  set(relation STATIC_LINK)
endif()

# license, home, CPE vendor:product
set(OpenSSL_is "Apache-2.0" https://www.openssl.org openssl:openssl)
set(zstd_is "BSD-3-Clause OR GPL-2.0-only" https://facebook.github.io/zstd facebook:zstandard)
set(zlib_is "Zlib" https://zlib.net zlib:zlib)
set(xxHash_is "BSD-2-Clause" https://xxhash.com "")
set(fmt_is "MIT" https://fmt.dev "")
set(fast_float_is "Apache-2.0 OR MIT OR BSL-1.0" https://github.com/fastfloat/fast_float "")
set(libstdc++_is "GPL-3.0-or-later WITH GCC-exception-3.1" https://gcc.gnu.org "")
set(glibc_is "LGPL-2.1-or-later" https://www.gnu.org/software/libc gnu:glibc)
set(headers_only xxHash fast_float)

set(packages "{
      \"SPDXID\": \"SPDXRef-weighbridge\",
      \"name\": \"weighbridge\",
      \"versionInfo\": \"${version}\",
      \"comment\": \"commit ${commit}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"primaryPackagePurpose\": \"APPLICATION\",
      \"licenseConcluded\": \"Apache-2.0\",
      \"licenseDeclared\": \"Apache-2.0\",
      \"copyrightText\": \"NOASSERTION\"
    }")
set(relations "{\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-weighbridge\"}")
string(JSON count LENGTH "${said}" libraries)
math(EXPR last "${count} - 1")
foreach(at RANGE ${last})
  string(JSON name MEMBER "${said}" libraries ${at})
  string(JSON of GET "${said}" libraries ${name})
  if(NOT DEFINED ${name}_is)
    message(FATAL_ERROR "cmake/sbom.cmake does not know ${name}, which is inside")
  endif()
  list(GET ${name}_is 0 license)
  list(GET ${name}_is 1 home)
  set(known "")
  list(LENGTH ${name}_is fields)
  if(fields GREATER 2)
    list(GET ${name}_is 2 cpe)
    if(cpe)
      set(known ",
        {\"referenceCategory\": \"SECURITY\", \"referenceType\": \"cpe23Type\", \"referenceLocator\": \"cpe:2.3:a:${cpe}:${of}:*:*:*:*:*:*:*\"}")
    endif()
  endif()
  string(REPLACE "+" "-plus" id ${name})
  string(REPLACE "_" "-" id ${id})
  string(TOLOWER ${name} lower)
  string(REPLACE "+" "%2B" lower ${lower})
  string(APPEND packages ",
    {
      \"SPDXID\": \"SPDXRef-${id}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${of}\",
      \"homepage\": \"${home}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"primaryPackagePurpose\": \"LIBRARY\",
      \"licenseConcluded\": \"${license}\",
      \"licenseDeclared\": \"${license}\",
      \"copyrightText\": \"NOASSERTION\",
      \"externalRefs\": [
        {\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:generic/${lower}@${of}\"}${known}
      ]
    }")
  set(how ${relation})
  if(name IN_LIST headers_only)
    set(how STATIC_LINK)
  endif()
  string(APPEND relations ",
    {\"spdxElementId\": \"SPDXRef-weighbridge\", \"relationshipType\": \"${how}\", \"relatedSpdxElement\": \"SPDXRef-${id}\"}")
endforeach()
file(WRITE ${OUT} "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"weighbridge-${version}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/weighbridge-${version}-${commit}\",
  \"creationInfo\": {\"created\": \"${DATE}T00:00:00Z\", \"creators\": [\"Tool: weighbridge-${version}\"]},
  \"packages\": [
    ${packages}
  ],
  \"relationships\": [
    ${relations}
  ]
}
")
