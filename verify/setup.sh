# shellcheck shell=bash
# What verify/run and verify/test share: install what is missing, configure and build what changed.
# To be sourced. Nothing here prints anything when there is nothing to do, and all messages go to standard error.
# A failure to set up or build ends the script with status 3; 0, 1 and 2 are verify's own answers.

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
logs=$root/build/logs
python_environment=$root/build/python
cuda_root=''

# Debian and Ubuntu's packages. A tool also counts as present when its command is found, wherever it came from.
tools=(cmake:cmake ninja:ninja-build g++:g++ doxygen:doxygen python3:python3)
check_tools=(clang++:clang clang-format:clang-format)
libraries=(libeigen3-dev doctest-dev libcli11-dev libfmt-dev nlohmann-json3-dev)
requirements='CMake 3.25, Ninja, g++ 12, Doxygen, Python 3 with venv, Eigen 3.4, doctest, CLI11, fmt and nlohmann-json'

# The CUDA compiler as NVIDIA publishes it on PyPI. Every part is pinned: left to itself, pip would pair this compiler
# with the newest, foreign back end.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 3
}

# on_terminal: whether somebody watches the messages.
on_terminal() { [[ -t 2 ]]; }

# step TITLE LOG COMMAND...: runs a long command with its output in build/logs/LOG. Shows the seconds as they pass on a
# terminal, and the whole log if the command fails.
step() {
    local title=$1 log=$logs/$2 ticker='' started=$SECONDS status=0
    shift 2
    if on_terminal; then
        while kill -0 $$ 2>/dev/null; do
            printf '\r%s ... %d s' "$title" $((SECONDS - started)) >&2
            sleep 1
        done &
        ticker=$!
    else
        say "$title ..."
    fi
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $ticker ]]; then
        kill "$ticker"
        wait "$ticker" 2>/dev/null || true
        printf '\r%s ... %d s\n' "$title" $((SECONDS - started)) >&2
    fi
    if ((status != 0)); then
        cat "$log" >&2
        say "$title: failed with status $status."
        return 1
    fi
}

# Set-up and builds take turns, so that two runs at the same time don't write the same files.
lock() {
    mkdir -p "$logs" 2>/dev/null && [[ -w $root/build && -w $logs ]] || fail "No permission to write $root/build, where everything is built."
    exec {lock_file}>"$root/build/.lock"
    if ! flock --nonblock "$lock_file"; then
        say 'Waiting for another run of verify/run or verify/test to finish its build ...'
        flock "$lock_file"
    fi
}

unlock() {
    flock --unlock "$lock_file"
    exec {lock_file}>&-
}

# usable_cuda DIRECTORY: whether a CUDA toolkit of version 13 or newer, with headers and runtime library, lies there.
usable_cuda() {
    local version
    [[ -x $1/bin/nvcc ]] || return 1
    version=$("$1/bin/nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    [[ $version ]] && ((version >= 13)) || return 1
    compgen -G "$1/include/cuda.h" >/dev/null || compgen -G "$1/targets/*/include/cuda.h" >/dev/null || return 1
    compgen -G "$1/lib*/libcudart.so" >/dev/null || compgen -G "$1/targets/*/lib/libcudart.so" >/dev/null
}

# Sets cuda_root to this system's toolkit, or to nothing. BLOCK_ATTENTION_IGNORE_SYSTEM_CUDA=1 finds none.
find_system_cuda() {
    local compiler candidate
    [[ ${BLOCK_ATTENTION_IGNORE_SYSTEM_CUDA:-} != 1 ]] || return 0
    compiler=$(type -P nvcc || true)
    [[ ! $compiler ]] || compiler=$(dirname "$(dirname "$(readlink -f "$compiler")")")
    for candidate in "$compiler" "${CUDA_HOME:-}" /usr/local/cuda; do
        if [[ $candidate ]] && usable_cuda "$candidate"; then
            cuda_root=$candidate
            return 0
        fi
    done
}

# up_to_date STAMP CONTENT: whether an earlier run left this very stamp.
up_to_date() { [[ -f $1 && $(<"$1") == "$2" ]]; }

cuda_stamp() { printf '%s\n' "${cuda_wheels[@]}"; }

# install_system_packages [venv] [checks]: what apt can install and what is not there yet.
install_system_packages() {
    local needed=("${tools[@]}") missing=() tool wish as_root=()
    [[ " $* " != *' checks '* ]] || needed+=("${check_tools[@]}")
    for tool in "${needed[@]}"; do
        type -P "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
    done
    if [[ " $* " == *' venv '* ]] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        missing+=(python3-venv)
    fi
    if ! type -P apt-get >/dev/null || ! type -P dpkg-query >/dev/null; then
        # Libraries go by other names here. If one is missing, CMake says so when it configures.
        ((${#missing[@]} == 0)) || fail "This system has no apt-get. Please install $requirements.
Not found (by the names of Debian's packages): ${missing[*]}."
        return 0
    fi
    for wish in "${libraries[@]}"; do
        [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$wish" 2>/dev/null) == installed ]] ||
            missing+=("$wish")
    done
    ((${#missing[@]} > 0)) || return 0

    local by_hand="Please install the missing packages and try again:
    apt-get install ${missing[*]}"
    if [[ $(id -u) != 0 ]]; then
        type -P sudo >/dev/null || fail "This user is not root and has no sudo. $by_hand"
        # Asks for the password now, while nothing hides the question.
        sudo --validate || fail "sudo was refused. $by_hand"
        as_root=(sudo)
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
    step 'Reading the list of system packages' apt-update.txt "${apt[@]}" update || fail "$by_hand"
    step "Installing ${missing[*]}" apt-install.txt \
        "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" || fail "$by_hand"
}

make_python_environment() {
    [[ -x $python_environment/bin/python ]] || step 'Creating the Python environment build/python' venv.txt \
        python3 -m venv --clear "$python_environment" || fail 'Python 3 with the modules venv and ensurepip is needed.'
}

pip_install() { "$python_environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

# The CUDA compiler from PyPI, in the shape that CMake's FindCUDAToolkit and nvcc.profile expect. Sets cuda_root.
install_cuda_wheels() {
    local stamp=$python_environment/.cuda-wheels library
    if ! up_to_date "$stamp" "$(cuda_stamp)"; then
        make_python_environment
        step "Installing NVIDIA's CUDA compiler 13.0 from PyPI, 105 MB under NVIDIA's licence" cuda.txt \
            pip_install --no-deps "${cuda_wheels[@]}" || fail 'Without these wheels a CUDA toolkit 13.0 or newer is needed: in PATH, CUDA_HOME or /usr/local/cuda.'
        cuda_root=$(echo "$python_environment"/lib/python3*/site-packages/nvidia/cu13)
        library=$(basename "$(compgen -G "$cuda_root/lib/libcudart.so.*")")
        ln -sfn "$library" "$cuda_root/lib/libcudart.so"
        ln -sfn lib "$cuda_root/lib64"
        usable_cuda "$cuda_root" || fail "The compiler in $cuda_root does not run on this machine."
        cuda_stamp >"$stamp"
    fi
    cuda_root=$(echo "$python_environment"/lib/python3*/site-packages/nvidia/cu13)
}

# The Python packages that the notebooks' test needs.
install_notebook_packages() {
    local stamp=$python_environment/.notebooks list=$root/notebooks/requirements.txt
    if up_to_date "$stamp" "$(<"$list")"; then return 0; fi
    make_python_environment
    step 'Installing the Python packages of the notebooks, 50 MB' notebooks.txt \
        pip_install --requirement "$list" || fail 'The notebooks cannot be tested without their packages.'
    cp "$list" "$stamp"
}

# prepare LEVEL: everything that a `program` needs to be built, `tests` (also the notebooks' packages) or `checks` (also
# the tools of `verify/test --all`). Takes the lock.
prepare() {
    local level=$1 for_packages=()
    lock
    find_system_cuda
    if [[ $level == checks ]]; then for_packages+=(checks); fi
    if [[ ! -x $python_environment/bin/python ]] && [[ ! $cuda_root || $level != program ]]; then
        for_packages+=(venv)
    fi
    install_system_packages "${for_packages[@]}"
    [[ $cuda_root ]] || install_cuda_wheels
    [[ $level == program ]] || install_notebook_packages
}

# configure NAME PRESET [CMAKE OPTION...]: makes build/NAME, unless it was made just like that before.
configure() {
    local name=$1 directory=$root/build/$1 options wanted
    options=(--preset "$2" -B "$directory" "-DCUDAToolkit_ROOT=$cuda_root"
        "-DBLOCK_ATTENTION_PYTHON=$python_environment/bin/python" "${@:3}")
    wanted="${options[*]} presets: $(cksum <"$root/CMakePresets.json")"
    if [[ -f $directory/build.ninja ]] && up_to_date "$directory/.configured" "$wanted"; then return 0; fi
    step "Configuring build/$name" "configure-$name.txt" cmake -S "$root" --fresh "${options[@]}" ||
        fail "If one of these is missing or older, install it: $requirements."
    printf '%s\n' "$wanted" >"$directory/.configured"
}

# build NAME TARGET: builds a target of build/NAME if anything changed.
build() {
    local name=$1 ninja=(ninja -C "$root/build/$1" "$2")
    [[ $("${ninja[@]}" -n 2>&1 | tail -n 1) != 'ninja: no work to do.' ]] || return 0
    if on_terminal; then
        say "Building build/$name"
        "${ninja[@]}" >&2 || fail 'The build failed.'
    else
        step "Building build/$name" "build-$name.txt" "${ninja[@]}" || fail 'The build failed.'
    fi
}
