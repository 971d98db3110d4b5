// The parts of the HloModuleProto reader and writer: proto_reader.cc and proto_writer.cc (modules,
// computations, instructions), proto_shape.cc (shapes, literals), proto_attrs.cc (attributes of the
// families in attrs.h), proto_text_attrs.cc and proto_sharding.cc (attributes that modules keep as
// text).
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
// "channel_id=1, replica_groups={{0}}": the attributes of instructions that are kept as written.
TextAttrs SplitTextAttrs(std::string_view text);
// Puts attributes in the order in which they are printed.
void SortTextAttrs(TextAttrs* attrs);

// Message OpSharding and its text: {replicated}, {devices=[2,1]0,1}, {mesh['a'=2], [{'a'}]}, ...
std::string ReadSharding(protozero::pbf_reader in, ProtoError& error, int depth = 0);
void WriteSharding(protozero::pbf_writer& out, std::string_view text, int depth = 0);
// Its part by the axes of a mesh.
bool IsMeshSharding(std::string_view text);
std::string ReadMeshSharding(protozero::pbf_reader in, ProtoError& error);
void WriteMeshSharding(FieldWriter& v, std::string_view text);

// Where a sharding comes from: {op_name="x" source_line=4}, and a list of those in braces.
struct SourceNote {
  std::string op_type, op_name, source_file;
  int64_t source_line = 0;
};
void NoteRows(FieldReader& v, SourceNote& note);
void NoteRows(FieldWriter& v, const SourceNote& note);
std::string NotesText(const std::vector<SourceNote>& notes);  // {op_name="x"}, {op_name="y"}
std::vector<SourceNote> ParseNotes(std::string_view text);    // in braces: a note, or a list

// Messages OriginalValueProto and StatisticsViz, and their texts.
std::string ReadOrigin(protozero::pbf_reader in, ProtoError& error);
void WriteOrigin(FieldWriter& v, std::string_view text);
std::string ReadStatistics(protozero::pbf_reader in, ProtoError& error);
void WriteStatistics(FieldWriter& v, std::string_view text);

// Message FrontendAttributes and its text {a="b"}.
std::string ReadFrontendAttributes(protozero::pbf_reader in, ProtoError& error);
void WriteFrontendAttributes(protozero::pbf_writer& out, std::string_view text);

}  // namespace lazuli::hlo::internal
