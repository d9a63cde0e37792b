// SPDX-License-Identifier: Apache-2.0
// Wrote SPARSE of test_ztensor0.py, with the published crate ztensor 0.1.0. Its writer stores a sparse tensor as one blob,
// which must be as long as the dense tensor.
use ztensor::models::*;
use ztensor::*;

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn main() {
    let mut w = ZTensorWriter::create(std::env::args().nth(1).unwrap()).unwrap();
    let coo = [words(&[4, 1]), 1.5f32.to_le_bytes().to_vec(), words(&[0, 0]), (-0.0f32).to_le_bytes().to_vec()].concat();
    let doubles: Vec<u8> = [1.0f64, -2.5, 1e300, f64::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
    let csr = [words(&[0, 1, 3, 4, 2, 0, 3, 1]), doubles].concat();
    let small = [words(&[0, 1, 2, 5, 0]), 1f32.to_le_bytes().to_vec(), 2f32.to_le_bytes().to_vec()].concat();
    let byte = [words(&[7]), vec![1]].concat();
    let (none, crc) = (ChecksumAlgorithm::None, ChecksumAlgorithm::Crc32c);
    let big = Some(DataEndianness::Big);
    let (of_coo, of_csr) = (Layout::SparseCoo, Layout::SparseCsr);
    let mut add = |name: &str, shape: &[u64], dtype, layout: &Layout, encoding, blob: &Vec<u8>, endianness, checksum| {
        w.add_tensor(name, shape.to_vec(), dtype, layout.clone(), encoding, blob.clone(), endianness, checksum, None).unwrap()
    };
    add("coo", &[5, 2], DType::Float32, &of_coo, Encoding::Raw, &coo, None, none);
    add("coo.big", &[5, 2], DType::Float32, &of_coo, Encoding::Raw, &coo, big.clone(), crc);
    add("coo.zstd", &[5, 2], DType::Float32, &of_coo, Encoding::Zstd, &coo, None, crc);
    add("csr", &[3, 4], DType::Float64, &of_csr, Encoding::Raw, &csr, None, crc);
    add("csr.big", &[3, 4], DType::Float64, &of_csr, Encoding::Raw, &csr, big.clone(), none);
    add("csr.zstd", &[3, 4], DType::Float64, &of_csr, Encoding::Zstd, &csr, None, none);
    add("csr.f32.big", &[2, 6], DType::Float32, &of_csr, Encoding::Raw, &small, big, none);
    add("coo.u8", &[9], DType::Uint8, &of_coo, Encoding::Raw, &byte, None, none);
    w.finalize().unwrap();
}
