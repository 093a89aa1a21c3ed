# find_package(fa) gives fa::fa, an interface target that carries the include path and what the CPU path links with.
# It serves C, C++ and CUDA projects, and finds its headers from its own place, so that a prefix may be moved.
get_filename_component(_fa_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(fa_FOUND TRUE)
if(NOT EXISTS "${_fa_prefix}/include/fa/fa.h")
  set(fa_FOUND FALSE)
  set(fa_NOT_FOUND_MESSAGE "the package is at ${CMAKE_CURRENT_LIST_DIR}, but ${_fa_prefix}/include/fa/fa.h is missing")
endif()
foreach(_fa_component IN LISTS fa_FIND_COMPONENTS)
  if(fa_FIND_REQUIRED_${_fa_component})
    set(fa_FOUND FALSE)
    set(fa_NOT_FOUND_MESSAGE "fa has no components, and ${_fa_component} is asked for")
  endif()
endforeach()

if(fa_FOUND AND NOT TARGET fa::fa)
  add_library(fa::fa INTERFACE IMPORTED)
  # No FindThreads, which a project with CUDA as its only language cannot use; and -lm, since m may be a target of the project's.
  set_target_properties(fa::fa PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_fa_prefix}/include"
    INTERFACE_LINK_LIBRARIES "-lpthread;-lm")
endif()
unset(_fa_prefix)
