// SPDX-License-Identifier: Apache-2.0
// The lists.
#include "formats/pytorch/globals.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/archive/pickle_globals.h"
#include "core/model/words.h"
#include "formats/pytorch/layout.h"

namespace weighbridge::pytorch {
namespace {

// Classes and functions, their names separated by spaces, with the place where their objects have their content.
struct ContentRow {
  std::string_view module, names;
  Holds holds;
};
constexpr ContentRow kContents[] = {
    {"__builtin__", "bytes bytearray", Holds::encoded},
    {"__builtin__", "dict", Holds::items},
    {"__builtin__", "set frozenset", Holds::list},
    {"__builtin__", "complex", Holds::numbers},
    {"_codecs", "encode", Holds::encoded},
    {"argparse", "Namespace", Holds::state},
    {"builtins", "bytearray bytes", Holds::encoded},
    {"builtins", "dict", Holds::items},
    {"builtins", "frozenset set", Holds::list},
    {"builtins", "complex range", Holds::numbers},
    {"collections", "OrderedDict defaultdict Counter", Holds::items},
    {"collections", "deque", Holds::list},
    {"datetime", "datetime date", Holds::date},
    {"datetime", "timedelta", Holds::numbers},
    {"decimal", "Decimal", Holds::one},
    {"fractions", "Fraction", Holds::one},
    {"lightning.fabric.utilities.data", "AttributeDict", Holds::items},
    {"lightning.pytorch.utilities.parsing", "AttributeDict", Holds::items},
    {"lightning_fabric.utilities.data", "AttributeDict", Holds::items},
    {"numpy", "dtype", Holds::type},
    {"numpy._core.multiarray", "scalar", Holds::numpy_scalar},
    {"numpy.core.multiarray", "scalar", Holds::numpy_scalar},
    {"omegaconf.dictconfig", "DictConfig", Holds::content},
    {"omegaconf.listconfig", "ListConfig", Holds::content},
    {"omegaconf.nodes", "AnyNode BooleanNode EnumNode FloatNode IntegerNode PathNode StringNode", Holds::node},
    {"pathlib", "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath", Holds::path},
    {"pathlib._local", "PosixPath WindowsPath", Holds::path},
    {"pytorch_lightning.utilities.parsing", "AttributeDict", Holds::items},
    {"torch", "device", Holds::device},
    {"torch", "Size", Holds::numbers},
    {"torch.jit._pickle", "restore_type_tag", Holds::first},
    {"torch.jit._pickle", "build_tensorlist", Holds::list},
    {"torch.jit._pickle", "build_boollist build_doublelist build_intlist", Holds::one},
};

// Further harmless names of PyTorch. core/archive/pickle_globals.h has those of Python and of other packages.
struct Name {
  std::string_view module, names;
};
constexpr Name kTorch[] = {
    {"torch",
     "Tensor per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric "
     "per_channel_affine_float_qparams strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc "
     "contiguous_format channels_last preserve_format Generator QScheme dtype layout memory_format "
     "legacy_contiguous_format _mkldnn jagged"},
    {"torch._C._nn", "gelu"},
    {"torch._tensor", "_rebuild_from_type_v2 _rebuild_from_type Tensor"},
    {"torch._utils",
     "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage "
     "_rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_csr_tensor "
     "_rebuild_sparse_tensor _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass"},
    {"torch.nn", "Parameter"},
    {"torch.nn.parameter", "Parameter Buffer UninitializedParameter"},
    {"torch.serialization", "_get_layout _get_dtype"},
    // Optimizers, schedulers and scalers as a whole (torch/optim, torch/amp), and the metadata of a distributed
    // checkpoint (torch/distributed/checkpoint/metadata.py, filesystem.py).
    {"torch._utils", "_rebuild_nested_tensor"},
    {"torch.amp.grad_scaler", "GradScaler _refresh_per_optimizer_state"},
    {"torch.cuda.amp.grad_scaler", "GradScaler _refresh_per_optimizer_state"},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo"},
    {"torch.distributed.checkpoint.metadata",
     "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta TensorProperties "
     "TensorStorageMetadata _MEM_FORMAT_ENCODING"},
    {"torch.nn.utils.rnn", "PackedSequence"},
    {"torch.optim", "Adafactor Muon"},
    {"torch.optim.adadelta", "Adadelta"},
    {"torch.optim.adagrad", "Adagrad"},
    {"torch.optim.adam", "Adam"},
    {"torch.optim.adamax", "Adamax"},
    {"torch.optim.adamw", "AdamW"},
    {"torch.optim.asgd", "ASGD"},
    {"torch.optim.lbfgs", "LBFGS"},
    {"torch.optim.lr_scheduler",
     "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR LinearLR "
     "MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR"},
    {"torch.optim.nadam", "NAdam"},
    {"torch.optim.radam", "RAdam"},
    {"torch.optim.rmsprop", "RMSprop"},
    {"torch.optim.rprop", "Rprop"},
    {"torch.optim.sgd", "SGD"},
    {"torch.optim.sparse_adam", "SparseAdam"},
    {"torch.utils.data.dataset", "TensorDataset"},
};

template <class Row, std::size_t n>
const Row* find(const Row (&rows)[n], std::string_view module, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(
      rows, [&](const Row& each) { return each.module == module && core::has_word(each.names, name); });
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
