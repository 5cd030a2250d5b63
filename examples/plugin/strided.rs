// SPDX-License-Identifier: Apache-2.0
//! A sampler in Rust: `strided` steps through the records by a fixed distance.
//!
//!     rustc -O --edition 2021 --crate-type cdylib strided.rs -o libstrided.so
//!
//! The declarations follow headrace/plugin.h member by member. Constants that hold pointers are
//! `Sync` here because nothing is ever written to them.

use std::ffi::c_void;
use std::os::raw::c_char;
use std::panic::catch_unwind;
use std::ptr::null;

const ABI: u32 = 1;
const OK: i32 = 0;
const BAD_ARGUMENTS: i32 = 2;
const FAILED: i32 = 3;
const PARAM_INT: i32 = 2;
const ANY_POSITION: u32 = 2;

#[repr(C)]
pub struct Error {
    struct_size: u32,
    capacity: u32,
    text: *mut c_char,
}

#[repr(C)]
pub struct Value {
    kind: i32,
    count: u32,
    integer: i64,
    number: f64,
    text: *const c_char,
    integers: *const i64,
    numbers: *const f64,
}

#[repr(C)]
struct Param {
    name: *const c_char,
    help: *const c_char,
    kind: i32,
    flags: u32,
    fallback: Value,
    minimum: f64,
    maximum: f64,
    choices: *const *const c_char,
    choice_count: u32,
    min_count: u32,
    max_count: u32,
    reserved: u32,
}

/// An array in a table: its address, length, and the size of an element.
#[repr(C)]
struct List<T> {
    data: *const T,
    count: u32,
    size: u32,
}

impl<T> List<T> {
    const EMPTY: List<T> = List {
        data: null(),
        count: 0,
        size: 0,
    };

    const fn of<const N: usize>(array: &'static Constant<[T; N]>) -> List<T> {
        List {
            data: &array.0 as *const [T; N] as *const T,
            count: N as u32,
            size: std::mem::size_of::<T>() as u32,
        }
    }
}

#[repr(C)]
pub struct Records {
    struct_size: u32,
    reserved: u32,
    count: i64,
    weights: *const f64,
    integers: *const i64,
    parts: i64,
}

#[repr(C)]
struct Sampler {
    name: *const c_char,
    help: *const c_char,
    flags: u32,
    per_record: i32,
    params: List<Param>,
    create: Option<
        unsafe extern "C" fn(
            *const Value,
            u32,
            *const Records,
            *mut *mut c_void,
            *mut Error,
        ) -> i32,
    >,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    size: Option<unsafe extern "C" fn(*const c_void) -> i64>,
    order: Option<
        unsafe extern "C" fn(*const c_void, u64, u64, i64, i64, *mut i64, *mut Error) -> i32,
    >,
    batches:
        Option<unsafe extern "C" fn(*const c_void, *mut *const i64, *mut i64, *mut Error) -> i32>,
}

#[repr(C)]
pub struct Plugin {
    abi: u32,
    struct_size: u32,
    name: *const c_char,
    version: *const c_char,
    help: *const c_char,
    transforms: List<c_void>,
    codecs: List<c_void>,
    storages: List<c_void>,
    samplers: List<Sampler>,
}

struct Constant<T>(T);
unsafe impl<T> Sync for Constant<T> {}

macro_rules! text {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const c_char
    };
}

unsafe fn fail(error: *mut Error, code: i32, message: &str) -> i32 {
    let count = message.len().min((*error).capacity as usize - 1);
    std::ptr::copy_nonoverlapping(message.as_ptr() as *const c_char, (*error).text, count);
    *(*error).text.add(count) = 0;
    code
}

/// Position p of an epoch is the record (first + p * stride) % count, which visits each once.
struct Strided {
    count: i64,
    stride: i64,
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// SplitMix64: the first record of an epoch.
fn mixed(seed: u64, epoch: u64) -> u64 {
    let mut z = seed.wrapping_add(epoch.wrapping_add(1).wrapping_mul(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

unsafe extern "C" fn create(
    values: *const Value,
    _count: u32,
    records: *const Records,
    object: *mut *mut c_void,
    error: *mut Error,
) -> i32 {
    let (count, stride) = ((*records).count, (*values).integer);
    if gcd(stride, count) != 1 {
        let message = format!(
            "stride {} and {} records have a common factor",
            stride, count
        );
        return fail(error, BAD_ARGUMENTS, &message);
    }
    *object = Box::into_raw(Box::new(Strided { count, stride })) as *mut c_void;
    OK
}

unsafe extern "C" fn destroy(object: *mut c_void) {
    if !object.is_null() {
        drop(Box::from_raw(object as *mut Strided));
    }
}

unsafe extern "C" fn order(
    object: *const c_void,
    seed: u64,
    epoch: u64,
    begin: i64,
    count: i64,
    out: *mut i64,
    error: *mut Error,
) -> i32 {
    // A panic must not cross the C interface.
    let filled = catch_unwind(|| {
        let own = &*(object as *const Strided);
        let first = (mixed(seed, epoch) % own.count as u64) as i128;
        for i in 0..count {
            let place = first + (begin + i) as i128 * own.stride as i128;
            *out.add(i as usize) = (place % own.count as i128) as i64;
        }
    });
    match filled {
        Ok(()) => OK,
        Err(_) => fail(error, FAILED, "it panicked"),
    }
}

static PARAMS: Constant<[Param; 1]> = Constant([Param {
    name: text!("stride"),
    help: text!(
        "Distance from a record to the next one; has no factor in common with their number."
    ),
    kind: PARAM_INT,
    flags: 0,
    fallback: Value {
        kind: PARAM_INT,
        count: 0,
        integer: 1,
        number: 0.0,
        text: null(),
        integers: null(),
        numbers: null(),
    },
    minimum: 1.0,
    maximum: 1e15,
    choices: null(),
    choice_count: 0,
    min_count: 0,
    max_count: 0,
    reserved: 0,
}]);

static SAMPLERS: Constant<[Sampler; 1]> = Constant([Sampler {
    name: text!("strided"),
    help: text!("Each record once, ``stride`` apart, from a random one on."),
    flags: ANY_POSITION,
    per_record: 0,
    params: List::of(&PARAMS),
    create: Some(create),
    destroy: Some(destroy),
    size: None,
    order: Some(order),
    batches: None,
}]);

static PLUGIN: Constant<Plugin> = Constant(Plugin {
    abi: ABI,
    struct_size: std::mem::size_of::<Plugin>() as u32,
    name: text!("strided"),
    version: text!("1.0"),
    help: text!("An example of a sampler, in Rust."),
    transforms: List::EMPTY,
    codecs: List::EMPTY,
    storages: List::EMPTY,
    samplers: List::of(&SAMPLERS),
});

#[no_mangle]
pub extern "C" fn headrace_plugin_table(_abi: u32) -> *const Plugin {
    &PLUGIN.0
}
