# Builds device plugins, in this tree or out of it: a plugin's project needs nothing but this folder's parent, sdk/.
#
#   include(<sdk>/cmake/TenonSDK.cmake)
#   tenon_add_plugin(NAME acme SOURCES acme.cpp [LIBRARIES lib...] [DEVICES acme:0 ...] [CPU_FEATURES avx2 ...]
#                    [VENDOR text] [VERSION 1.2.0] [DESCRIPTION text] [STATIC_RUNTIME] [NO_INSTALL])
#
# makes the target tenon_plugin_acme and, in <build>/plugins/acme/, tenon_acme.so with its manifest.json: a folder that can
# be dropped into a plugin directory as it is. It is installed to <libdir>/tenon/plugins/acme/.
#   DEVICES         names of the devices that it may bring; a name without index stands for all of its indices
#   CPU_FEATURES    what the processor must have for the library to be opened at all, by the kernel's names (/proc/cpuinfo)
#   STATIC_RUNTIME  links the C++ runtime in, for a binary that outlives the distribution it was built on
# Read from outside: TENON_SANITIZE (such as "address,undefined"): goes into the manifest, and into the flags when the
# project doesn't set them by tenon_build_flags.
cmake_minimum_required(VERSION 3.20)
include_guard(GLOBAL)
include(CheckCXXCompilerFlag)
include(GNUInstallDirs)

get_filename_component(TENON_SDK_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(TENON_SDK_DIR "${TENON_SDK_DIR}" CACHE INTERNAL "Tenon's sdk/ folder")
set(TENON_SDK_CMAKE_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "Where TenonSDK.cmake lies")
# Installed, this file lies in <prefix>/<libdir>/cmake/tenon and the headers in <prefix>/include; see tenon_sdk_paths.cmake.
include("${CMAKE_CURRENT_LIST_DIR}/tenon_sdk_paths.cmake" OPTIONAL)

if(NOT TARGET tenon::sdk)
  add_library(tenon_sdk INTERFACE)
  add_library(tenon::sdk ALIAS tenon_sdk)
  target_include_directories(tenon_sdk INTERFACE "${TENON_SDK_DIR}/include")
endif()

check_cxx_compiler_flag(-fno-gnu-unique TENON_HAVE_NO_GNU_UNIQUE) # a unique symbol would keep the library from closing

# _tenon_abi_number(OUT NAME): the number that abi.h defines NAME as.
function(_tenon_abi_number out name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TENON_SDK_DIR}/include/tenon/abi.h")
  file(STRINGS "${TENON_SDK_DIR}/include/tenon/abi.h" line REGEX "^#define ${name} [0-9]+")
  if(NOT line MATCHES "^#define ${name} ([0-9]+)")
    message(FATAL_ERROR "tenon: ${TENON_SDK_DIR}/include/tenon/abi.h doesn't define ${name}")
  endif()
  set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# _tenon_json_text(OUT TEXT): TEXT as a JSON string, quotes included.
function(_tenon_json_text out text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REGEX REPLACE "[\r\n\t]" " " text "${text}")
  set(${out} "\"${text}\"" PARENT_SCOPE)
endfunction()

# _tenon_json_list(OUT TEXT...): a JSON array of strings.
function(_tenon_json_list out)
  set(items "")
  foreach(text IN LISTS ARGN)
    _tenon_json_text(item "${text}")
    list(APPEND items "${item}")
  endforeach()
  list(JOIN items ", " items)
  set(${out} "[${items}]" PARENT_SCOPE)
endfunction()

function(_tenon_write_manifest file name library)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "VENDOR;VERSION;DESCRIPTION" "DEVICES;CPU_FEATURES")
  _tenon_abi_number(min TN_ABI_MINOR_MIN)
  _tenon_abi_number(max TN_ABI_MINOR_MAX)
  foreach(field VENDOR VERSION DESCRIPTION)
    _tenon_json_text(${field} "${arg_${field}}")
  endforeach()
  _tenon_json_list(devices ${arg_DEVICES})
  _tenon_json_list(features ${arg_CPU_FEATURES})
  _tenon_json_text(sanitizer "${TENON_SANITIZE}")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "{
  \"manifest\": 1,
  \"name\": \"@name@\",
  \"vendor\": @VENDOR@,
  \"version\": @VERSION@,
  \"description\": @DESCRIPTION@,
  \"abi\": {\"major\": 1, \"min\": @min@, \"max\": @max@},
  \"arch\": \"@CMAKE_SYSTEM_PROCESSOR@\",
  \"cpu_features\": @features@,
  \"file\": \"@library@\",
  \"devices\": @devices@,
  \"sanitizer\": @sanitizer@
}
")
endfunction()

function(tenon_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "STATIC_RUNTIME;NO_INSTALL" "NAME;VENDOR;VERSION;DESCRIPTION"
                        "SOURCES;LIBRARIES;DEVICES;CPU_FEATURES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]*$" OR NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin: NAME (small letters, digits, _) and SOURCES are needed")
  endif()
  if(NOT arg_DEVICES)
    set(arg_DEVICES ${arg_NAME})
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION "${PROJECT_VERSION}")
  endif()

  find_package(Threads REQUIRED) # here: its target is known in the caller's folder only

  set(target tenon_plugin_${arg_NAME})
  set(folder "${PROJECT_BINARY_DIR}/plugins/${arg_NAME}")
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE tenon::sdk Threads::Threads ${arg_LIBRARIES})
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME tenon_${arg_NAME} SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${folder}" NO_SONAME ON
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${TENON_SDK_CMAKE_DIR}/tenon_plugin.map")
  if(TENON_HAVE_NO_GNU_UNIQUE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${TENON_SDK_CMAKE_DIR}/tenon_plugin.map")
  if(TARGET tenon_build_flags)
    target_link_libraries(${target} PRIVATE tenon_build_flags)
  elseif(TENON_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${TENON_SANITIZE})
  endif()
  if(NOT TENON_SANITIZE) # a sanitizer's own symbols come from the host program
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
    if(arg_STATIC_RUNTIME)
      target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
    endif()
  endif()

  _tenon_write_manifest("${folder}/manifest.json" ${arg_NAME} tenon_${arg_NAME}.so VENDOR "${arg_VENDOR}"
                        VERSION "${arg_VERSION}" DESCRIPTION "${arg_DESCRIPTION}" DEVICES ${arg_DEVICES}
                        CPU_FEATURES ${arg_CPU_FEATURES})
  # The registry refuses what others could write to; a umask of 002 would make the build tree's plugins so.
  add_custom_command(TARGET ${target} POST_BUILD COMMAND chmod go-w "${folder}" "$<TARGET_FILE:${target}>"
                                                                    "${folder}/manifest.json" VERBATIM)
  if(NOT arg_NO_INSTALL)
    set(to "${CMAKE_INSTALL_LIBDIR}/tenon/plugins/${arg_NAME}")
    install(TARGETS ${target} LIBRARY DESTINATION ${to} COMPONENT plugin_${arg_NAME})
    install(FILES "${folder}/manifest.json" DESTINATION ${to} COMPONENT plugin_${arg_NAME})
  endif()
endfunction()
