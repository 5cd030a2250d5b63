// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/caught_error.h"

#include <exception>
#include <new>

namespace headrace {
namespace {

const ErrorCode kOutOfMemory{
    "HR0704", ErrorKind::kResource, "out of memory",
    "The system refused memory for this record although memory_limit allows it: other processes "
    "or a container's limit leave less than the loader was allowed. Lower memory_limit or threads."};

const ErrorCode kUnexpected{
    "HR0791", ErrorKind::kData, "exception inside the engine",
    "A part of the engine, or of Python code below it, threw an unexpected exception. It counts "
    "as an error of the current record, so on_error= applies; the message contains the exception."};

}  // namespace

Error error_from_current_exception() {
  try {
    throw;
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::bad_alloc&) {
    return {.code = &kOutOfMemory, .what = "the system refused memory"};
  } catch (const std::exception& exception) {
    return {.code = &kUnexpected, .what = exception.what()};
  }
}

}  // namespace headrace
