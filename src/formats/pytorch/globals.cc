// SPDX-License-Identifier: Apache-2.0
// The lists.
#include "formats/pytorch/globals.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/pickle_globals.h"
#include "formats/pytorch/layout.h"

namespace weighbridge::pytorch {
namespace {

// Classes and functions, with the place where their objects have their content.
struct ContentRow {
  std::string_view module, name;
  Holds holds;
};
constexpr ContentRow kContents[] = {
    {"_codecs", "encode", Holds::encoded},
    {"argparse", "Namespace", Holds::state},
    {"builtins", "bytearray", Holds::encoded},
    {"builtins", "bytes", Holds::encoded},
    {"builtins", "complex", Holds::numbers},
    {"builtins", "dict", Holds::items},
    {"builtins", "frozenset", Holds::list},
    {"builtins", "range", Holds::numbers},
    {"builtins", "set", Holds::list},
    {"__builtin__", "bytes", Holds::encoded},
    {"__builtin__", "bytearray", Holds::encoded},
    {"__builtin__", "set", Holds::list},
    {"__builtin__", "frozenset", Holds::list},
    {"__builtin__", "complex", Holds::numbers},
    {"__builtin__", "dict", Holds::items},
    {"collections", "OrderedDict", Holds::items},
    {"collections", "defaultdict", Holds::items},
    {"collections", "Counter", Holds::items},
    {"datetime", "datetime", Holds::date},
    {"datetime", "date", Holds::date},
    {"datetime", "timedelta", Holds::numbers},
    {"decimal", "Decimal", Holds::one},
    {"numpy", "dtype", Holds::type},
    {"numpy.core.multiarray", "scalar", Holds::numpy_scalar},
    {"numpy._core.multiarray", "scalar", Holds::numpy_scalar},
    {"omegaconf.dictconfig", "DictConfig", Holds::content},
    {"omegaconf.listconfig", "ListConfig", Holds::content},
    {"omegaconf.nodes", "AnyNode", Holds::node},
    {"omegaconf.nodes", "BooleanNode", Holds::node},
    {"omegaconf.nodes", "EnumNode", Holds::node},
    {"omegaconf.nodes", "FloatNode", Holds::node},
    {"omegaconf.nodes", "IntegerNode", Holds::node},
    {"omegaconf.nodes", "PathNode", Holds::node},
    {"omegaconf.nodes", "StringNode", Holds::node},
    {"pathlib", "Path", Holds::path},
    {"pathlib", "PosixPath", Holds::path},
    {"pathlib", "PurePath", Holds::path},
    {"pathlib", "PurePosixPath", Holds::path},
    {"pathlib", "PureWindowsPath", Holds::path},
    {"pathlib", "WindowsPath", Holds::path},
    {"pathlib._local", "PosixPath", Holds::path},
    {"pathlib._local", "WindowsPath", Holds::path},
    {"lightning_fabric.utilities.data", "AttributeDict", Holds::items},
    {"lightning.fabric.utilities.data", "AttributeDict", Holds::items},
    {"pytorch_lightning.utilities.parsing", "AttributeDict", Holds::items},
    {"lightning.pytorch.utilities.parsing", "AttributeDict", Holds::items},
    {"torch", "Size", Holds::numbers},
    {"torch", "device", Holds::device},
    {"collections", "deque", Holds::list},
    {"fractions", "Fraction", Holds::one},
    {"torch.jit._pickle", "build_boollist", Holds::one},
    {"torch.jit._pickle", "build_doublelist", Holds::one},
    {"torch.jit._pickle", "build_intlist", Holds::one},
    {"torch.jit._pickle", "build_tensorlist", Holds::list},
    {"torch.jit._pickle", "restore_type_tag", Holds::first},
};

// Further harmless names of PyTorch. core/pickle_globals.h has those of Python and of other packages.
struct Name {
  std::string_view module, name;
};
constexpr Name kTorch[] = {
    {"torch", "Tensor"},
    {"torch", "per_tensor_affine"},
    {"torch", "per_tensor_symmetric"},
    {"torch", "per_channel_affine"},
    {"torch", "per_channel_symmetric"},
    {"torch", "per_channel_affine_float_qparams"},
    {"torch", "strided"},
    {"torch", "sparse_coo"},
    {"torch", "sparse_csr"},
    {"torch", "sparse_csc"},
    {"torch", "sparse_bsr"},
    {"torch", "sparse_bsc"},
    {"torch", "contiguous_format"},
    {"torch", "channels_last"},
    {"torch", "preserve_format"},
    {"torch._C._nn", "gelu"},
    {"torch._tensor", "_rebuild_from_type_v2"},
    {"torch._tensor", "_rebuild_from_type"},
    {"torch._tensor", "Tensor"},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor"},
    {"torch._utils", "_rebuild_device_tensor_from_numpy"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage"},
    {"torch._utils", "_rebuild_parameter"},
    {"torch._utils", "_rebuild_parameter_with_state"},
    {"torch._utils", "_rebuild_qtensor"},
    {"torch._utils", "_rebuild_sparse_csr_tensor"},
    {"torch._utils", "_rebuild_sparse_tensor"},
    {"torch._utils", "_rebuild_tensor"},
    {"torch._utils", "_rebuild_tensor_v2"},
    {"torch._utils", "_rebuild_tensor_v3"},
    {"torch._utils", "_rebuild_wrapper_subclass"},
    {"torch.nn.parameter", "Parameter"},
    {"torch.nn.parameter", "Buffer"},
    {"torch.nn", "Parameter"},
    {"torch.serialization", "_get_layout"},
    {"torch", "Generator"},
    {"torch", "QScheme"},
    {"torch", "dtype"},
    {"torch", "layout"},
    {"torch", "memory_format"},
    {"torch", "legacy_contiguous_format"},
    {"torch", "_mkldnn"},
    {"torch", "jagged"},
    {"torch.nn.parameter", "UninitializedParameter"},
    {"torch.serialization", "_get_dtype"},
    // Optimizers, schedulers and scalers as a whole (torch/optim, torch/amp), and the metadata of a distributed
    // checkpoint (torch/distributed/checkpoint/metadata.py, filesystem.py).
    {"torch._utils", "_rebuild_nested_tensor"},
    {"torch.amp.grad_scaler", "GradScaler"},
    {"torch.amp.grad_scaler", "_refresh_per_optimizer_state"},
    {"torch.cuda.amp.grad_scaler", "GradScaler"},
    {"torch.cuda.amp.grad_scaler", "_refresh_per_optimizer_state"},
    {"torch.optim", "Adafactor"},
    {"torch.optim", "Muon"},
    {"torch.optim.adadelta", "Adadelta"},
    {"torch.optim.adagrad", "Adagrad"},
    {"torch.optim.adam", "Adam"},
    {"torch.optim.adamax", "Adamax"},
    {"torch.optim.adamw", "AdamW"},
    {"torch.optim.asgd", "ASGD"},
    {"torch.optim.lbfgs", "LBFGS"},
    {"torch.optim.nadam", "NAdam"},
    {"torch.optim.radam", "RAdam"},
    {"torch.optim.rmsprop", "RMSprop"},
    {"torch.optim.rprop", "Rprop"},
    {"torch.optim.sgd", "SGD"},
    {"torch.optim.sparse_adam", "SparseAdam"},
    {"torch.optim.lr_scheduler", "ConstantLR"},
    {"torch.optim.lr_scheduler", "CosineAnnealingLR"},
    {"torch.optim.lr_scheduler", "CosineAnnealingWarmRestarts"},
    {"torch.optim.lr_scheduler", "CyclicLR"},
    {"torch.optim.lr_scheduler", "ExponentialLR"},
    {"torch.optim.lr_scheduler", "LambdaLR"},
    {"torch.optim.lr_scheduler", "LinearLR"},
    {"torch.optim.lr_scheduler", "MultiStepLR"},
    {"torch.optim.lr_scheduler", "MultiplicativeLR"},
    {"torch.optim.lr_scheduler", "OneCycleLR"},
    {"torch.optim.lr_scheduler", "PolynomialLR"},
    {"torch.optim.lr_scheduler", "ReduceLROnPlateau"},
    {"torch.optim.lr_scheduler", "SequentialLR"},
    {"torch.optim.lr_scheduler", "StepLR"},
    {"torch.nn.utils.rnn", "PackedSequence"},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo"},
    {"torch.distributed.checkpoint.metadata", "BytesStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "Metadata"},
    {"torch.distributed.checkpoint.metadata", "MetadataIndex"},
    {"torch.distributed.checkpoint.metadata", "StorageMeta"},
    {"torch.distributed.checkpoint.metadata", "TensorProperties"},
    {"torch.distributed.checkpoint.metadata", "TensorStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"},
    {"torch.utils.data.dataset", "TensorDataset"},
};

template <class Row, std::size_t n>
const Row* find(const Row (&rows)[n], std::string_view module, std::string_view name) noexcept {
  const auto found =
      std::ranges::find_if(rows, [&](const Row& each) { return each.module == module && each.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

bool is_storage(std::string_view module, std::string_view name) noexcept {
  return (module == "torch" || module == "torch.cuda" || module == "torch.storage") && type_of_storage(name) != nullptr;
}

// The classes of torch.nn, of which whole models consist.
bool is_module_class(std::string_view module, std::string_view name) noexcept {
  return module.starts_with("torch.nn.modules.") && !name.empty() && name[0] >= 'A' && name[0] <= 'Z' &&
         name.find('.') == name.npos;
}

}  // namespace

bool is_known(std::string_view module, std::string_view name) noexcept {
  return core::is_harmless_global(module, name) || find(kContents, module, name) != nullptr ||
         find(kTorch, module, name) != nullptr || is_storage(module, name) ||
         (module == "torch" && type_of(name) != nullptr) || is_module_class(module, name);
}

Holds holds_of(std::string_view module, std::string_view name) noexcept {
  if (module == "__torch__" || module.starts_with("__torch__.")) return Holds::script;
  const ContentRow* const content = find(kContents, module, name);
  return content == nullptr ? Holds::nothing : content->holds;
}

}  // namespace weighbridge::pytorch
