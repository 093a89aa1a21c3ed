# find_package(fa) gives fa::fa, an interface target that carries the include path and what the CPU path links with.
# It serves C, C++ and CUDA projects, and finds its headers from its own place, so that a prefix may be moved.
get_filename_component(_fa_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET fa::fa)
  add_library(fa::fa INTERFACE IMPORTED)
  # Plain library names and no FindThreads, which a project with CUDA as its only language cannot use.
  set_target_properties(fa::fa PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_fa_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;m")
endif()

if(NOT EXISTS "${_fa_prefix}/include/fa/fa.h")
  set(fa_FOUND FALSE)
  set(fa_NOT_FOUND_MESSAGE "the package is at ${CMAKE_CURRENT_LIST_DIR}, but ${_fa_prefix}/include/fa/fa.h is missing")
endif()
unset(_fa_prefix)
