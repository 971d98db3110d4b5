#include "ir/hlo/proto/proto_fields.h"

namespace lazuli::hlo::internal {

bool FieldReader::WrongType(protozero::pbf_wire_type expected) {
  error_.Note("field ", in_.tag(), " has wire type ", static_cast<int>(in_.wire_type()), ", not ",
              static_cast<int>(expected));
  return false;
}

}  // namespace lazuli::hlo::internal
