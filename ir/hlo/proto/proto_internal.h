// The parts of the HloModuleProto reader and writer: proto_reader.cc and proto_writer.cc (modules,
// computations, instructions), proto_shape.cc (shapes, literals), proto_attrs.cc (attributes of the
// families in attrs.h), proto_devices.cc (groups of devices, shardings), proto_text_attrs.cc
// (attributes that modules keep as text).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/hlo/attrs.h"
#include "ir/hlo/opcode.h"
#include "ir/hlo/proto/proto_fields.h"

namespace lazuli::hlo::internal {

// Message ShapeProto. Tuples deeper than the text's are refused.
void ReadShape(protozero::pbf_reader in, ProtoError& error, Shape* shape, int depth = 0);
void WriteShape(protozero::pbf_writer& out, const Shape& shape);

// Message LiteralProto.
void ReadLiteral(protozero::pbf_reader in, ProtoError& error, Literal* literal, int depth = 0);
void WriteLiteral(protozero::pbf_writer& out, const Literal& literal);

// Fields of HloInstructionProto that belong to a family of attributes.
void ReadAttrsField(FieldReader& field, Attrs* attrs);
void WriteAttrs(protozero::pbf_writer& out, const Attrs& attrs);

// Attributes as text: name, value. The value is spelled as the printer would.
using TextAttrs = std::vector<std::pair<std::string, std::string>>;

// A field of HloInstructionProto that becomes an attribute as text.
void ReadTextAttr(FieldReader& field, TextAttrs* attrs);
void WriteTextAttr(protozero::pbf_writer& out, std::string_view name, std::string_view value);
// The parts of text like {a=1, b={2}}, without its braces.
TextAttrs SplitTextAttrs(std::string_view text);
// Puts attributes in the order in which they are printed.
void SortTextAttrs(TextAttrs* attrs);

// Message OpSharding.
Sharding ReadSharding(protozero::pbf_reader in, ProtoError& error);
void WriteSharding(FieldWriter& v, const Sharding& sharding);
// The field of this number, and those that hold groups in other forms or for other versions.
void ReadReplicaGroups(FieldReader& v, Tag tag, ReplicaGroups& groups);
void WriteReplicaGroups(FieldWriter& v, Tag tag, const ReplicaGroups& groups);

// Messages OriginalValueProto and StatisticsViz, and their texts.
std::string ReadOrigin(protozero::pbf_reader in, ProtoError& error);
void WriteOrigin(FieldWriter& v, std::string_view text);
std::string ReadStatistics(protozero::pbf_reader in, ProtoError& error);
void WriteStatistics(FieldWriter& v, std::string_view text);

// Message FrontendAttributes and its text {a="b"}.
std::string ReadFrontendAttributes(protozero::pbf_reader in, ProtoError& error);
void WriteFrontendAttributes(protozero::pbf_writer& out, std::string_view text);

}  // namespace lazuli::hlo::internal
