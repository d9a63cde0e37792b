// SPDX-License-Identifier: Apache-2.0
// Views into a temporary handle must not compile. run.py plants one error at a time.
#include <string>

#include "weighbridge/open.h"

namespace wb = weighbridge;

void use(const auto&) {}

void model(const std::string& path) {
#ifdef PLANTED_FORMAT
  use(wb::open(path).format());
#endif
#ifdef PLANTED_VERSION
  use(wb::open(path).version());
#endif
#ifdef PLANTED_NAME_BY_INDEX
  use(wb::open(path).name(0));
#endif
#ifdef PLANTED_ATTRIBUTE
  use(wb::open(path).attribute("k"));
#endif
#ifdef PLANTED_DTYPE_LABEL
  use(wb::open(path).dtype_label());
#endif
#ifdef PLANTED_ATTRIBUTES_FIND
  use(wb::open(path).attributes().find("k"));
#endif
#ifdef PLANTED_BEGIN
  use(wb::open(path).begin()->name());
#endif
#ifdef PLANTED_BEGIN_REFERENCE
  use((*wb::open(path).begin()).name());
#endif
  const wb::Model model = wb::open(path);
  use(model.format());
  use(model.version());
  use(model.name(0));
  use(model.attribute("k"));
  use(model.dtype_label());
  const wb::Attributes attributes = model.attributes();
  use(attributes.find("k"));
  for (const wb::Tensor& tensor : wb::open(path)) use(tensor.name());
}

void tensor(const std::string& path) {
#ifdef PLANTED_NAME
  use(wb::open(path)["w"].name());
#endif
#ifdef PLANTED_SHAPE
  use(wb::open(path)["w"].shape());
#endif
#ifdef PLANTED_LAYOUT_NAME
  use(wb::open(path)["w"].layout_name());
#endif
#ifdef PLANTED_TYPE_NAME
  use(wb::open(path)["w"].type_name());
#endif
#ifdef PLANTED_UNSUPPORTED
  use(wb::open(path)["w"].unsupported());
#endif
#ifdef PLANTED_TENSOR_ATTRIBUTE
  use(wb::open(path)["w"].attribute("k"));
#endif
#ifdef PLANTED_AS
  use(wb::open(path)["w"].as<float>());
#endif
#ifdef PLANTED_FOUND
  use(wb::open(path).find("w")->name());
#endif
#ifdef PLANTED_FOUND_REFERENCE
  use((*wb::open(path).find("w")).name());
#endif
#ifdef PLANTED_FOUND_VALUE
  use(wb::open(path).find("w").value().name());
#endif
  const wb::Tensor tensor = wb::open(path)["w"];
  use(tensor.name());
  use(tensor.shape());
  use(tensor.layout_name());
  use(tensor.type_name());
  use(tensor.unsupported());
  use(tensor.attribute("k"));
  use(tensor.as<float>());
  if (const auto found = wb::open(path).find("w")) use(found->name());
  use(wb::open(path).find("w").value().dtype());
}

void part(const std::string& path) {
#ifdef PLANTED_ROLE
  use(wb::open(path)["w"].main().role());
#endif
#ifdef PLANTED_DTYPE_NAME
  use(wb::open(path)["w"].main().dtype_name());
#endif
#ifdef PLANTED_PART_SHAPE
  use(wb::open(path)["w"].main().shape());
#endif
#ifdef PLANTED_STRIDES
  use(wb::open(path)["w"].main().strides());
#endif
#ifdef PLANTED_ENCODING_NAME
  use(wb::open(path)["w"].main().encoding_name());
#endif
#ifdef PLANTED_DIGEST
  use(wb::open(path)["w"].main().digest());
#endif
#ifdef PLANTED_FOUND_PART
  use(wb::open(path)["w"].part("data")->role());
#endif
#ifdef PLANTED_FIRST_PART
  use((*wb::open(path)["w"].parts().begin()).role());
#endif
  const wb::Part part = wb::open(path)["w"].main();
  use(part.role());
  use(part.dtype_name());
  use(part.shape());
  use(part.strides());
  use(part.encoding_name());
  use(part.digest());
  if (const auto found = wb::open(path)["w"].part("data")) use(found->role());
  for (const wb::Part& each : wb::open(path)["w"].parts()) use(each.role());
}
