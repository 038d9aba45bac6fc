# Which operator families a build links in: VESTA_FAMILIES is `all`, `training`, or a list of names (the files of
# src/ops). Functions of a family that is left out stay declared; calling one throws NotImplementedError. For small
# static programs: the linker drops the kernels that no family needs.
set(VESTA_FAMILIES "all" CACHE STRING "Operator families to link in: all, training, or a list of names")

# What no layer, loss or optimiser of nn and optim for MLPs, convolutional and recurrent nets and transformers needs.
set(VESTA_NOT_FOR_TRAINING
  ctc distance fake_quantize fft stft grid_sample histogram jagged linalg_cholesky linalg_eigen linalg_lstsq linalg_lu
  linalg_products linalg_solve linalg_svd loss_margin quantile segment special special_polynomials)

# The members of `families` that this build leaves out.
function(vesta_left_out out families)
  set(left)
  if(VESTA_FAMILIES STREQUAL "training")
    set(left ${VESTA_NOT_FOR_TRAINING})
  elseif(NOT VESTA_FAMILIES STREQUAL "all")
    foreach(name ${VESTA_FAMILIES})
      if(NOT name IN_LIST families)
        message(FATAL_ERROR "VESTA_FAMILIES: there is no operator family `${name}`. There are: ${families}")
      endif()
    endforeach()
    set(left ${families})
    list(REMOVE_ITEM left ${VESTA_FAMILIES})
  endif()
  if(left AND (VESTA_BUILD_TESTS OR VESTA_BUILD_CLI))
    message(FATAL_ERROR "VESTA_FAMILIES=${VESTA_FAMILIES}: the tests and the vesta program need every operator; "
      "set VESTA_BUILD_TESTS=OFF and VESTA_BUILD_CLI=OFF")
  endif()
  set(${out} ${left} PARENT_SCOPE)
endfunction()
